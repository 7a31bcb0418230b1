# shellcheck shell=bash disable=SC2034  # the sourcing scripts use its variables
# Sourced by the scripts in this folder: installs missing system packages and finds a Swift toolchain.
# Exit codes follow sysexits: 69 if a requirement isn’t available.

SWIFT_NEEDED=6.2

# report TEXT…: prints progress on stderr. die CODE SENTENCE…: prints the problem and its remedy, and exits.
report() { printf '%s\n' "$*" >&2; }
die() {
    local code=$1
    shift
    printf '%s: %s\n' "$(basename "$0")" "$1" >&2
    shift
    [ $# -eq 0 ] || printf '  %s\n' "$@" >&2
    exit "$code"
}

# The packages that a build needs, and those that only tests and gates need.
BUILD_PACKAGES=(git libzmq3-dev libmpv-dev libcurl4-openssl-dev libsodium-dev libxml2-dev libsqlite3-dev libncurses-dev)
TEST_PACKAGES=(protobuf-compiler dbus pulseaudio pulseaudio-utils pipewire-pulse wireplumber)
BENCH_PACKAGES=(gcc libc6-dev pkg-config)

# Whether the package NAME is installed. A tool from another source (git, gcc …) counts, too.
package_present() {
    case $1 in
        git) command -v git >/dev/null && return ;;
        gcc) command -v cc >/dev/null && return ;;
        dbus) command -v dbus-daemon >/dev/null && return ;;
        protobuf-compiler) command -v protoc >/dev/null && return ;;
        pkg-config) command -v pkg-config >/dev/null && return ;;
    esac
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Prints the command prefix that runs a command as root, on one line; fails if there is none.
root_prefix() {
    if [ "$(id -u)" -eq 0 ]; then
        echo "env"
    elif ! command -v sudo >/dev/null; then
        return 1
    elif sudo -n true 2>/dev/null; then
        echo "sudo -n"
    elif [ -t 0 ] && [ -t 2 ]; then
        echo "sudo"
    else
        return 1
    fi
}

# install_missing PACKAGE…: installs the missing ones of these packages.
install_missing() {
    local package missing=() prefix log
    if ! command -v dpkg-query >/dev/null; then
        report "This isn’t Debian or Ubuntu; assuming that these are installed: $*"
        return
    fi
    for package in "$@"; do package_present "$package" || missing+=("$package"); done
    [ ${#missing[@]} -gt 0 ] || return 0
    prefix=$(root_prefix) ||
        die 69 "these packages are missing, and installing them needs root: ${missing[*]}" \
            "Install them and start again:  apt-get install ${missing[*]}"
    report "Installing ${missing[*]}"
    log=$(mktemp)
    # shellcheck disable=SC2086  # the prefix is a list of words
    if ! {
        $prefix env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 update -q &&
            $prefix env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -q \
                --no-install-recommends "${missing[@]}"
    } </dev/null >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        die 69 "apt-get couldn’t install ${missing[*]} (the end of its output is above)" \
            "Install them by hand and start again:  apt-get install ${missing[*]}"
    fi
    rm -f "$log"
}

# version_at_least HAVE NEED: whether the dotted version HAVE is NEED or later.
version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# The version that the toolchain in folder DIR reports; empty if it can’t be run.
swift_version() { "$1/swift" --version 2>/dev/null | sed -n 's/.*Swift version \([0-9][0-9.]*\).*/\1/p' | head -n 1; }

# Puts a sufficiently new toolchain first on PATH, and exports PATH.
find_swift() {
    local home=${HOME:-/root} folder version rejected=() seen=: candidates=()
    if folder=$(command -v swift); then candidates+=("$(dirname "$folder")"); fi
    for folder in ${SWIFT_TOOLCHAIN:+"$SWIFT_TOOLCHAIN/usr/bin" "$SWIFT_TOOLCHAIN/bin"} \
        /opt/swift/usr/bin /opt/swift/bin /opt/swift*/usr/bin /opt/swift-*/bin /usr/local/swift*/usr/bin \
        "$home"/.local/share/swiftly/bin "$home"/.swiftly/bin "$home"/.local/share/swiftly/toolchains/*/usr/bin \
        "$home"/swift-*/usr/bin /usr/local/bin /usr/share/swift/usr/bin /usr/libexec/swift/bin \
        /usr/libexec/swift/*/bin /usr/libexec/swift/*/usr/bin /usr/lib/swift*/bin; do
        [ -x "$folder/swift" ] && candidates+=("$folder")
    done
    for folder in ${candidates[@]+"${candidates[@]}"}; do
        case $seen in *":$folder:"*) continue ;; esac
        seen=$seen$folder:
        version=$(swift_version "$folder")
        if [ -n "$version" ] && version_at_least "$version" "$SWIFT_NEEDED"; then
            export PATH="$folder:$PATH"
            return
        fi
        rejected+=("$folder/swift is ${version:-a program that does not start}")
    done
    if [ ${#rejected[@]} -gt 0 ]; then
        die 69 "no Swift toolchain of version $SWIFT_NEEDED or later was found, only:" "${rejected[@]}" \
            "Install one from https://www.swift.org/install/linux/, then start again" \
            "(SWIFT_TOOLCHAIN=/path/to/toolchain names one in an unusual place)."
    fi
    die 69 "no Swift toolchain was found, neither on PATH nor in the usual places (/opt/swift, ~/.local/share/swiftly, /usr/libexec/swift …)" \
        "Lockstep needs Swift $SWIFT_NEEDED or later: https://www.swift.org/install/linux/" \
        "SWIFT_TOOLCHAIN=/path/to/toolchain names one in an unusual place."
}

# Prints the names of the installed programs.
program_names() {
    local main
    echo lockstep
    for main in Sources/lockstep-*/Main.swift; do basename "$(dirname "$main")"; done
}

# build_programs CONFIGURATION [bench]: builds all programs in one build, with "bench" also the benchmark harness, and
# prints their folder.
build_programs() {
    local flags=(-c "$1" --jobs "$(build_jobs)")
    export LOCKSTEP_TARGETS=${2:-programs}
    swift build "${flags[@]}" </dev/null >&2 && swift build "${flags[@]}" --show-bin-path </dev/null
}

# The number of parallel compilers: one per core, fewer if memory is scarce (a compiler uses up to about 1.5 GiB).
build_jobs() {
    local cores memory
    cores=$(nproc 2>/dev/null || echo 2)
    memory=$(awk '/^MemAvailable:/ { print int($2 / 1572864) }' /proc/meminfo 2>/dev/null || echo "$cores")
    [ "${memory:-0}" -ge 1 ] || memory=1
    echo $((memory < cores ? memory : cores))
}
