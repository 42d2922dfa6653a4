import logging

print(
    logging.root.handlers,
    logging.root.level,
    logging.getLogger("x").getEffectiveLevel(),
    logging.Logger.manager.disable,
)
