#!/bin/sh
# PACKAGE0023 xsltproc: transforms XML by a style sheet
echo '<r><i n="2">b</i><i n="1">a</i></r>' >a.xml
cat >s.xsl <<'END'
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:output method="text"/>
<xsl:param name="p" select="'none'"/>
<xsl:template match="/"><xsl:for-each select="//i"><xsl:sort select="@n"/><xsl:value-of select="concat(@n, '=', ., '&#10;')"/></xsl:for-each><xsl:value-of select="$p"/><xsl:text>&#10;</xsl:text></xsl:template>
</xsl:stylesheet>
END
xsltproc s.xsl a.xml
xsltproc --stringparam p given s.xsl a.xml | tail -1
