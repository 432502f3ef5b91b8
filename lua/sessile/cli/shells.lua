--- shells: the completion scripts of the shells.
--
-- Owns: their text. Must never contain the name of a command: the scripts call `sessile
-- __complete`, so that they stay valid when commands change.

local shells = {}

--- The supported shells.
shells.names = { "bash", "zsh", "fish" }

-- bash passes the line and its word breaks; the others pass words without quotes.
shells.scripts = {
  bash = [=[
# bash completion for sessile. To have it here: eval "$(sessile completions bash)"
_sessile() {
    local line program=${1/#\~\//$HOME/} first=1 found
    line=$(LC_ALL=C; printf '%s' "${COMP_LINE:0:COMP_POINT}")
    COMPREPLY=()
    while IFS= read -r found; do
        if [ "$first" = 1 ]; then
            first=0
            [ "$found" = files ] && compopt -o default
            [ "$found" = folders ] && compopt -o dirnames
        else
            COMPREPLY+=("$found")
        fi
    done < <("$program" __complete bash "$COMP_WORDBREAKS" "$line" 2>/dev/null </dev/null)
}
complete -F _sessile sessile
]=],
  zsh = [=[
#compdef sessile
# zsh completion for sessile. To have it here: eval "$(sessile completions zsh)"
_sessile() {
    local -a typed lines names abouts
    local line place program=${(Q)words[1]}
    program=${program/#\~\//$HOME/}
    typed=("${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}")
    lines=("${(@f)$("$program" __complete words "${typed[@]}" 2>/dev/null </dev/null)}")
    place=$lines[1]
    for line in "${(@)lines[2,-1]}"; do
        [[ -n $line ]] || continue
        names+=("${line%%$'\t'*}")
        if [[ $line == *$'\t'* ]]; then
            abouts+=("${line%%$'\t'*}  ${line#*$'\t'}")
        else
            abouts+=("$line")
        fi
    done
    (( $#names )) && compadd -l -d abouts -a -- names
    [[ $place == files ]] && _files
    [[ $place == folders ]] && _files -/
    return 0
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _sessile "$@"
else
    compdef _sessile sessile
fi
]=],
  fish = [=[
# fish completion for sessile. To have it here: sessile completions fish | source
function __sessile_complete
    set -l typed (commandline -opc)
    set -l program $typed[1]
    set -l lines ($program __complete words $typed[2..-1] (commandline -ct) 2>/dev/null </dev/null)
    switch "$lines[1]"
        case files
            __fish_complete_path (commandline -ct)
        case folders
            __fish_complete_directories (commandline -ct)
    end
    for line in $lines[2..-1]
        printf '%s\n' $line
    end
end
complete -c sessile -f -a '(__sessile_complete)'
]=],
}

return shells
