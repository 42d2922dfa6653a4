import warnings

warnings.simplefilter("once")
for i in range(3):
    warnings.warn("same")
