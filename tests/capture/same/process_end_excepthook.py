import sys

sys.excepthook = lambda t, v, tb: print("hook", t.__name__, v, tb.tb_next, tb.tb_frame.f_code.co_name)
raise ValueError("h")
