try:
    import sitecustomize

    print("there")
except ImportError as e:
    print(e)
