echo "Helo, ${1:-world}!"
