"""Completions for bash, zsh and fish. In all of them the words of a line are those that are neither options nor values
of options; the words said so far decide what comes next. Nothing is asked of the daemon."""

from __future__ import annotations

from collections.abc import Iterator

from program import FILES, Program, spellings

from strixd.cli.grammar import Command, Option

_BASH = """\
# Completion of @NAME@ for bash, generated from its own definition.
@FUNCTION@() {
    local current=$2 before=$3 word skip='' options='' values='' files='' said=() line
    case $current in
        '=') current='' ;;
        *) [[ $before != '=' ]] || before=${COMP_WORDS[COMP_CWORD - 2]} ;;
    esac
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case $word in
            --) return ;;
            @VALUED@) skip=1 ;;
            '=') ;;
            -*) skip='' ;;
            *) if [[ $skip ]]; then skip=''; else said+=("$word"); fi ;;
        esac
    done
    line=${said[*]}
    case $before in
@VALUES@
        *)
            case $line in
@WORDS@
            esac
            case "$line " in
@OPTIONS@
            esac
            [[ $current != -* ]] || { values=$options files=''; }
            ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current")
    [[ ! $files ]] || { compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current"); }
}
complete -F @FUNCTION@ @NAME@
"""
_FISH = """\
# Completion of @NAME@ for fish, generated from its own definition.
function @FUNCTION@_said
    set -l said
    set -l skip
    for word in (commandline -opc)[2..]
        switch $word
            case @VALUED@
                set skip 1
            case '-*'
                set skip
            case '*'
                if test -n "$skip"
                    set skip
                else
                    set -a said $word
                end
        end
    end
    echo "$said"
end
function @FUNCTION@_at
    test (@FUNCTION@_said) = "$argv"
end
function @FUNCTION@_in
    string match -q -- "$argv *" (@FUNCTION@_said)" "
end
complete -c @NAME@ -f
@LINES@
"""
_ZSH = """\
#compdef @NAME@
# Completion of @NAME@ for zsh, generated from its own definition.
@FUNCTION@() {
    local context state state_descr line curcontext="$curcontext" said
    local -A opt_args
    local -a options next
    local at=2
    while (( at < CURRENT )); do
        case $words[at] in
            --) return 1 ;;
            @VALUED@) (( at++ )) ;;
            -*) ;;
            *) said+="${said:+ }$words[at]" ;;
        esac
        (( at++ ))
    done
    case "$said " in
@OPTIONS@
    esac
    case $said in
@WORDS@
    esac
    _arguments -S : $options '*: :->next'
    [[ $state == next && $PREFIX != -* ]] || return
    case $next[1] in
        '') return 1 ;;
        files) _files ;;
        *) _describe -t commands word next ;;
    esac
}
@FUNCTION@ "$@"
"""


def bash(program: Program) -> str:
    valued = [option for option in program.options() if option.value]
    values = [f"        {'|'.join(spellings([each]))}) {_bash_set(*_offered(each))} ;;" for each in valued]
    words = [f"                {_quoted(said)}) {_bash_set(*offer)} ;;" for said, offer in _places(program)]
    rows = [
        f"                {_prefix(said)}) options={_quoted(' '.join(spellings(given)))} ;;"
        for said, given in _options(program)
    ]
    return _filled(_BASH, program, VALUED="|".join(spellings(valued)), VALUES=values, WORDS=words, OPTIONS=rows)


def _bash_set(values: tuple[str, ...], files: bool) -> str:
    return "files=1" if files else f"values={_quoted(' '.join(values))}"


def fish(program: Program) -> str:
    valued = [option for option in program.options() if option.value]
    return _filled(_FISH, program, VALUED=" ".join(spellings(valued)), LINES=list(_fish_lines(program)))


def _fish_lines(program: Program) -> Iterator[str]:
    start, function = f"complete -c {program.name}", _function(program)
    for said, rows in program.line():
        for word, about in rows:
            yield f"{start} -n {_quoted(f'{function}_at {said}'.rstrip())} -a {word} -d {_quoted(about)}"
    for said, (values, files) in _places(program):
        if said and said not in dict(program.line()):
            what = "-F" if files else f"-a {_quoted(' '.join(values))}"
            yield f"{start} -n {_quoted(f'{function}_at {said}')} {what}"
    for said, options in _options(program):
        when = _quoted(f"{function}_in {said}" if said else f"{function}_at")
        yield from (f"{start} -n {when} {_fish_option(option)}" for option in options)


def _fish_option(option: Option) -> str:
    short = f" -s {option.short}" if option.short else ""
    values, files = _offered(option)
    takes = "" if not option.value else " -r -F" if files else f" -x -a {_quoted(' '.join(values))}"
    return f"-l {option.name.removeprefix('--')}{short}{takes} -d {_quoted(option.about)}"


def zsh(program: Program) -> str:
    valued = [option for option in program.options() if option.value]
    told = dict(program.line())
    words = [
        f"        {_quoted(said)}) next=({_zsh_next(told.get(said), *offer)}) ;;" for said, offer in _places(program)
    ]
    rows = [
        f"        {_prefix(said)}) options=({' '.join(_zsh_option(each) for each in given)}) ;;"
        for said, given in _options(program)
    ]
    return _filled(_ZSH, program, VALUED="|".join(spellings(valued)), WORDS=words, OPTIONS=rows)


def _zsh_next(rows: tuple[tuple[str, str], ...] | None, values: tuple[str, ...], files: bool) -> str:
    if rows:
        return " ".join(_quoted(f"{word}:{about}") for word, about in rows)
    return "files" if files else " ".join(values)


def _zsh_option(option: Option) -> str:
    about = option.about.replace("[", "(").replace("]", ")").replace(":", ";")
    values, files = _offered(option)
    what = "_files" if files else f"({' '.join(values)})" if values else " "
    takes = f":{option.value}:{what}" if option.value else ""
    return " ".join(_quoted(f"{name}[{about}]{takes}") for name in spellings([option]))


def _offered(option: Option) -> tuple[tuple[str, ...], bool]:
    """What may be its value, and whether files may."""
    return option.choices, option.value in FILES


def _places(program: Program) -> Iterator[tuple[str, tuple[tuple[str, ...], bool]]]:
    """The words said so far, and what may follow them: words, or files. Only where something is known."""
    for said, rows in program.line():
        yield said, (tuple(word for word, _ in rows), False)
    for command in program.commands:
        for said, offer in _words(program, command):
            if offer != ((), False):
                yield said, offer


def _words(program: Program, command: Command) -> Iterator[tuple[str, tuple[tuple[str, ...], bool]]]:
    """Only of its first place: behind it comes what somebody made up, and no command has two places with choices."""
    for word in command.words[:1]:
        yield command.name, (program.choices(word), word.name in FILES)


def _options(program: Program) -> list[tuple[str, tuple[Option, ...]]]:
    rows = [(each.name, (*each.options, *program.everywhere)) for each in program.commands]
    return [*rows, ("", (*program.everywhere, *program.alone))]


def _prefix(said: str) -> str:
    """A pattern for a line, with a blank behind it, that begins with these words."""
    return f"{_quoted(said + ' ')}*" if said else "' '"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "’") + "'"


def _function(program: Program) -> str:
    return "_" + program.name.replace("-", "_")


def _filled(text: str, program: Program, **places: str | list[str]) -> str:
    for name, value in {"NAME": program.name, "FUNCTION": _function(program), **places}.items():
        text = text.replace(f"@{name}@", value if isinstance(value, str) else "\n".join(value))
    return text
