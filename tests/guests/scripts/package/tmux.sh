#!/bin/sh
# PACKAGE0008 tmux: runs a shell in a session without a terminal, splits it, types into it and reads its screen
export SHELL=/bin/sh TMUX_TMPDIR=/tmp/work PS1='$ '
tmux -f /dev/null new-session -d -x 60 -y 10 -s one 'exec sh'
sleep 1
tmux send-keys -t one 'echo $((6 * 7)); tty | cut -c1-8' Enter
sleep 2
tmux capture-pane -p -t one | sed '/^$/d'
tmux split-window -h -t one 'exec sh'
tmux list-panes -t one -F '#{pane_index} #{pane_width}x#{pane_height} #{pane_dead}'
tmux send-keys -t one 'stty size' Enter
sleep 2
tmux capture-pane -p -t one | sed '/^$/d'
tmux list-sessions -F '#{session_name} #{session_windows}'
tmux kill-server
sleep 1
tmux list-sessions
echo "status $?"
