#!/bin/sh
# Adds extensions of k6 to what is built in this folder: Go modules, such as example.org/xk6-word@v0.1.0.
set -eu
number=0
for extension in "$@"; do
	number=$((number + 1))
	go get "$extension"
	printf 'package main\n\nimport _ "%s"\n' "${extension%@*}" >"extension_$number.go"
done
# One for k6 v1 would be built in and never found by a script: it registers itself with another k6.
if go list -deps -f '{{with .Module}}{{.Path}}{{end}}' . | grep -qx 'go\.k6\.io/k6'; then
	echo "an extension of $* is for k6 v1, and this is $(go list -m go.k6.io/k6/v2): take a later version of it" >&2
	exit 1
fi
