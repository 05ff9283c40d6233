#!/bin/sh
# PACKAGE0044 poppler-utils: reads text, pages and facts of a PDF
cat >a.pdf <<'END'
%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj
4 0 obj<</Length 46>>stream
BT /F 18 Tf 20 50 Td (Macadamia nuts) Tj ET   
endstream endobj
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
trailer<</Root 1 0 R>>
END
pdftotext a.pdf - 2>/dev/null | sed '/^\f*$/d'
pdfinfo a.pdf 2>/dev/null | grep -E '^Pages|^Page size'
pdftoppm -r 36 a.pdf page 2>/dev/null && ls page* && head -c 2 page-1.ppm; echo
pdftocairo -svg a.pdf a.svg 2>/dev/null && grep -c '<svg' a.svg
pdffonts a.pdf 2>/dev/null | awk 'NR == 3 { print $1, $2, $3 }'
