# Sourced by the other scripts: sets scale, recorded and finished from $config, which has the words of make's CONFIG,
# quoted as for a shell, and else from config/config.yaml.

recorded=
finished=
scale=$(sed -n "s/^scale: *[\"']\{0,1\}\([^\"' #]*\).*/\1/p" config/config.yaml)

read_words() {
    for word; do
        case $word in
            scale=*) scale=${word#scale=} ;;
            recorded=true) recorded=yes ;;
            finished=true) finished=yes ;;
            *=*) ;;
            *)
                echo "raretok: CONFIG has '$word', which is no KEY=VALUE; quote a value with blanks: CONFIG=\"'seeds=[1, 4]'\"" >&2
                exit 2
                ;;
        esac
    done
}

# Without patterns: [1,4] is a list.
set -f
eval "read_words $config" || exit 2
set +f
