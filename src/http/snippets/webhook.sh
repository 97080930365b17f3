#!/bin/sh
# usage: webhook.sh SECRET SIGNATURE < raw-body
secret=$1
signature=$2
tolerance_seconds=300

hmac() { openssl dgst -sha256 -hmac "$1" -hex | sed 's/^.*= *//'; }

time=$(printf '%s\n' "$signature" | tr ',' '\n' | sed -n 's/^ *t=\([0-9]\{1,15\}\)$/\1/p' | head -n 1)
age=$(($(date +%s) - ${time:-0}))
if [ "$age" -gt "$tolerance_seconds" ] || [ "$age" -lt "-$tolerance_seconds" ]; then
  echo "too old, or not signed" >&2
  exit 1
fi
expected=$({ printf '%s.' "$time"; cat; } | hmac "$secret")

# Compared by what a key of this moment makes of both: how long that takes tells nothing about them.
key=$(openssl rand -hex 32)
wanted=$(printf '%s' "$expected" | hmac "$key")
for given in $(printf '%s\n' "$signature" | tr ',' '\n' | sed -n 's/^ *v1=\([0-9a-f]\{64\}\)$/\1/p'); do
  if [ "$(printf '%s' "$given" | hmac "$key")" = "$wanted" ]; then
    echo "genuine"
    exit 0
  fi
done
echo "forged" >&2
exit 1
