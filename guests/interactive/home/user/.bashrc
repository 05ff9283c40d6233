# ~/.bashrc: what every interactive shell begins with.
case $- in
*i*) ;;
*) return ;;
esac
HISTCONTROL=ignoreboth
HISTSIZE=2000
HISTFILESIZE=4000
shopt -s histappend checkwinsize globstar 2>/dev/null
PS1='\[\e[1;32m\]\u@\h\[\e[0m\]:\[\e[1;34m\]\w\[\e[0m\]\$ '
alias ls='ls --color=auto'
alias ll='ls -l'
alias la='ls -A'
alias grep='grep --color=auto'
alias diff='diff --color=auto'
[ ! -x /usr/bin/dircolors ] || eval "$(dircolors -b)"
# Completion of arguments is loaded when Tab asks for it the first time: a prompt should not wait for it.
complete_later() {
    complete -r -D
    . /usr/share/bash-completion/bash_completion
    _completion_loader "$@"
}
[ ! -r /usr/share/bash-completion/bash_completion ] || complete -D -F complete_later -o bashdefault -o default
