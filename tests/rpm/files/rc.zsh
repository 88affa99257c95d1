# A key notes what fits, instead of putting it on the line.
fpath=($PWD $fpath)
autoload -Uz compinit
compinit -u -D
typeset -ga fits
compadd() {
    if [[ " $* " != *' -'[OAD]' '* ]]; then
        local -a these
        builtin compadd -O these "$@"
        fits+=($these)
    fi
    builtin compadd "$@"
}
_note() {
    fits=()
    _main_complete
    print -r -- ${(uo)fits} >>said
    compstate[insert]= compstate[list]=
}
zle -C note complete-word _note
bindkey '^Xa' note
print ready >>said
