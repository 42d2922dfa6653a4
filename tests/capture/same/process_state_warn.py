import sys
import warnings

print(warnings.filters, sys.warnoptions, warnings.showwarning.__module__)
