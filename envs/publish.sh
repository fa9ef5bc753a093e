# Replaces the recorded tables, figures and report of a scale by those that were just rendered:  sh envs/publish.sh SCALE
# Only this writes rendered files to results/recorded, so that a rendering that fails or is stopped leaves them whole.
set -eu

rendered=results/rendered/$1
recorded=results/recorded/$1
for name in tables figures report; do
    rm -rf "${recorded:?}/$name"
    cp -R "$rendered/$name" "$recorded/$name"
done
cp "$rendered"/*.csv "$recorded"/
