import locale
import time

print(locale.getlocale(), locale.setlocale(locale.LC_ALL), time.tzname)
