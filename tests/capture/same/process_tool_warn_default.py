import warnings

warnings.warn("w")
warnings.warn("d", DeprecationWarning)
