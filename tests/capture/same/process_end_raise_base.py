raise BaseException("b")
