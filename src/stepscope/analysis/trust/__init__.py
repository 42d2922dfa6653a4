"""Can this recording be trusted?"""
