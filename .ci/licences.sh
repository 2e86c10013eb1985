#!/usr/bin/env bash
# licences.sh checks that every linked module has a licence of the list .ci/licences.
set -euo pipefail
cd "$(dirname "$0")/.."
status=0
while read -r module dir; do
	file=$(find "$dir" -maxdepth 1 -iname 'licen[sc]e*' -o -maxdepth 1 -iname 'copying*' | head -n 1)
	kind=
	while read -r name words; do
		[ -z "$file" ] || [ -z "$name" ] || [ "$name" = '#' ] || ! tr -s ' \n\t' ' ' <"$file" | grep -qF "$words" || { kind=$name; break; }
	done <.ci/licences
	if [ -z "$kind" ]; then
		echo "$module: no licence of the list (${file:-no file})"
		status=1
	fi
	echo "$kind $module" >>"${1:-/dev/null}"
done < <(go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' work | sort -u)
exit $status
