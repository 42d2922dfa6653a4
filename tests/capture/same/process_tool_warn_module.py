import warnings

warnings.filterwarnings("error", module="__main__")
try:
    warnings.warn("w")
except UserWarning as e:
    print("err", e)
