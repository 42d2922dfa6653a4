import atexit

for i in range(5):
    atexit.register(print, i)
print("m")
