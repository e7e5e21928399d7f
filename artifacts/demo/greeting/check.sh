greeting=$(sh greet.sh Ada)
if [ "$greeting" = 'Hello, Ada!' ]; then
  echo "the greeting is right: $greeting"
else
  echo "the greeting is wrong: $greeting"
  exit 1
fi
