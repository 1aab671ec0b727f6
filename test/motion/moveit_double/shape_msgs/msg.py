from messages_double import message

SolidPrimitive = message("SolidPrimitive", type=0, dimensions=[])
SolidPrimitive.BOX, SolidPrimitive.SPHERE = 1, 2
