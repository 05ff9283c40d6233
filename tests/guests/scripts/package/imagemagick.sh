#!/bin/sh
# PACKAGE0042 imagemagick: draws, converts, resizes and compares pictures
which convert identify
convert -size 64x64 gradient:red-blue -depth 8 a.png
identify -format '%m %w %h %z\n' a.png
convert a.png -resize 50% -rotate 90 -flip b.gif && identify -format '%m %w %h\n' b.gif
convert a.png b.jpg && identify -format '%m %w %h\n' b.jpg
convert -size 4x1 xc:red -fill blue -draw 'point 2,0' txt:- | sed 's/.*#/#/' | tail -4
compare -metric AE a.png a.png null: 2>&1; echo
convert a.png -blur 0x2 -colorspace Gray -format '%[fx:w*h]\n' info:
montage a.png a.png -tile 2x1 -geometry +0+0 m.png && identify -format '%w %h\n' m.png
convert nothing.png x.png 2>/dev/null
echo "status $?"
