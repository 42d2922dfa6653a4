open("/nope/x")
