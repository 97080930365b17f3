#!/bin/sh
# usage: inbound-pipe.sh SENDER CLIENT_IP HELO RECIPIENT < mail
# INBOUND_URL and INBOUND_SECRET may be set here, or in a file that is read here.
set -u

encode() { printf '%s' "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g'; }

mail=$(mktemp) && answer=$(mktemp) || exit 75
trap 'rm -f "$mail" "$answer"' EXIT
cat >"$mail" || exit 75

envelope="mail_from=$(encode "$1")&remote_ip=$(encode "$2")&helo=$(encode "$3")&rcpt_to=$(encode "$4")"
time=$(date +%s)
v1=$({ printf '%s.%s.' "$time" "$envelope"; cat "$mail"; } |
  openssl dgst -sha256 -hmac "$INBOUND_SECRET" -hex | sed 's/^.*= *//')

status=$(curl --silent --max-time 120 --output "$answer" --write-out '%{http_code}' \
  --header 'Content-Type: message/rfc822' --header 'Expect:' \
  --header "Service-Envelope: $envelope" --header "Service-Signature: t=$time,v1=$v1" \
  --data-binary "@$mail" "$INBOUND_URL/inbound/raw")

# 75 asks Postfix to keep the mail and to try again; 69 returns it to its sender.
[ "$status" = 413 ] && echo '5.3.4 The mail is larger than this server takes' && exit 69
[ "$status" = 200 ] || exit 75
grep -q '"status":"accepted"' "$answer" && exit 0
grep -q '"status":"refused","code":4' "$answer" && exit 75
sed -n 's/.*"enhanced":"\([0-9.]*\)","text":"\([^"]*\)".*/\1 \2/p' "$answer"
exit 69
