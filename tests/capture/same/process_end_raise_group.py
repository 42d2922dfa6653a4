raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
