"""Locale, encoding, time zone and formats."""

import decimal
import locale
import os
import sys
import time

print(locale.setlocale(locale.LC_ALL), locale.getpreferredencoding(False), sys.getfilesystemencoding(), time.tzname)
print(time.strftime("%c", time.gmtime(0)), decimal.getcontext().prec, sys.float_repr_style)
os.environ["TZ"] = "Asia/Tokyo"
time.tzset()
print(time.strftime("%H %Z", time.localtime(0)), f"{1234567.891:n}", sys.get_int_max_str_digits())
