#!/usr/bin/env bash
# vm-apt.sh COMMAND...: runs a command of apt with a configuration, sources, lists and a cache of its own, in $DATXDP_VM_CACHE/apt:
# nothing that the host has installed, and none of its lists, is looked at or changed. The working directory stays. Its sources are Debian's, checked
# with Debian's keyring: DATXDP_MIRROR is another mirror of them.
set -euo pipefail

MIRROR=${DATXDP_MIRROR:-http://deb.debian.org/debian}
SUITES=(bookworm bookworm-backports trixie trixie-backports)
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
dir=${DATXDP_VM_CACHE:?tools/vm.sh sets it}/apt

mkdir -p "$dir"/{lists,cache/archives}/partial
touch "$dir/status"
for suite in "${SUITES[@]}"; do echo "deb [arch=amd64 signed-by=$KEYRING] $MIRROR $suite main"; done >"$dir/sources.list"
cat >"$dir/apt.conf" <<END
Dir::State "$dir";
Dir::State::lists "$dir/lists";
Dir::State::status "$dir/status";
Dir::Cache "$dir/cache";
Dir::Etc::sourcelist "$dir/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::main "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::trusted "/dev/null";
Dir::Etc::trustedparts "/dev/null";
APT::Architecture "amd64";
APT::Sandbox::User "root";
Acquire::Languages "none";
END
APT_CONFIG=$dir/apt.conf exec "$@"
