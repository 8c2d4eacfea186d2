"""The arena: a small game that plays itself, and that anybody may join from a browser.

`module` puts it together: the workflows of the other examples as they are, the land and its people (`realm`), what
players may do (`heroes`, `deeds`, `market`), and what happens by itself (`lair`, `wilds`, `bots`, `upkeep`).
"""
