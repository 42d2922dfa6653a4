class A:
    def __del__(self):
        print("deleted")


a = A()
