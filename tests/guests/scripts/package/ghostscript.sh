#!/bin/sh
# PACKAGE0043 ghostscript: renders PostScript and makes PDF
cat >a.ps <<'END'
%!PS
/Helvetica findfont 24 scalefont setfont
72 72 moveto (Macadamia) show
10 10 100 100 rectstroke
showpage
END
gs -q -dNOPAUSE -dBATCH -sDEVICE=pbmraw -r36 -sOutputFile=a.pbm a.ps
head -c 2 a.pbm; echo
cksum <a.pbm
ps2pdf a.ps a.pdf && head -c 5 a.pdf; echo
gs -q -dNODISPLAY -dBATCH -c '2 3 mul = 10 sqrt = quit'
gs -q -dNOPAUSE -dBATCH -sDEVICE=txtwrite -sOutputFile=- a.pdf | sed 's/ *//'
echo 'nonsense' | gs -q -dNODISPLAY -dBATCH - 2>&1 | head -1
