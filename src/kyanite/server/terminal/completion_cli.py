"""``kyanite completion``: the script with which a shell completes commands, options and names."""

import click

from kyanite.server.terminal.help_sections import examples

VARIABLE = "_KYANITE_COMPLETE"

# Bash takes a colon for a word of its own, and paths have one: so the words are cut here, and of what is offered only
# what follows the colon is given back.
_BASH = """\
_kyanite_completion() {
    local line="${COMP_LINE:0:COMP_POINT}" current="" kind value count
    local -a words
    read -ra words <<< "$line"
    count=${#words[@]}
    if [[ "$line" != *[[:space:]] ]]; then
        count=$((count - 1))
        current="${words[count]}"
    fi
    local before=""
    if [[ "$COMP_WORDBREAKS" == *:* ]]; then
        before="${current%"${current##*:}"}"
    fi
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case "$kind" in
            plain) COMPREPLY+=("${value#"$before"}") ;;
            file) compopt -o default ;;
            dir) compopt -o dirnames ;;
        esac
    done < <(env COMP_WORDS="$line" COMP_CWORD="$count" _KYANITE_COMPLETE=bash_complete "$1")
    if [[ "${COMPREPLY[0]}" == */ ]]; then
        compopt -o nospace
    fi
}

complete -F _kyanite_completion kyanite
"""


@click.command(
    help="Print what makes SHELL complete commands, options and, while a server runs, the names of accounts, "
    "containers, shares, blobs and files.",
    epilog=examples(
        'eval "$(kyanite completion bash)"                      in ~/.bashrc',
        'eval "$(kyanite completion zsh)"                       in ~/.zshrc',
        "kyanite completion fish > ~/.config/fish/completions/kyanite.fish",
    ),
)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    from click.shell_completion import get_completion_class

    if shell == "bash":
        click.echo(_BASH, nl=False)
        return
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(context.find_root().command, {}, "kyanite", VARIABLE).source())
