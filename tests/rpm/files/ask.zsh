# ask.zsh LINE...: what a zsh on a terminal of its own would offer after each, a line for each.
# The files of completion are in this folder.
zmodload zsh/zpty
cd ${0:h}
zpty -b shell zsh -f -i
zpty -w shell ". $PWD/rc.zsh"
repeat 200; do [[ -s said ]] && break; sleep 0.1; done
for line in "$@"; do
    before=$(wc -l <said)
    zpty -w -n shell "$line"$'\C-xa'
    repeat 100; do (( $(wc -l <said) > before )) && break; sleep 0.05; done
    zpty -w -n shell $'\C-u'
done
zpty -d shell
tail -n +2 said
