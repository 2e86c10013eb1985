{ for (i=1;i<=NF;i++) { n[$i]++; last[$i]=last[$i] " " FNR; if (length(last[$i])>400) last[$i]="" } }
FNR%2000==0 { for (w in n) if (n[w]<2) { delete n[w]; delete last[w] } }
END { for (w in n) print n[w], w | "sort -rn | head -3" }
