import importlib
import json

print(importlib.reload(json) is json)
