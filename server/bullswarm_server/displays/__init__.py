"""How answers look to people: plain lines with labels, coloured on a terminal only. No display decides anything."""
