import contextvars

v = contextvars.ContextVar("v", default=1)
print(v.get(), list(contextvars.copy_context()))
