//! What happens to a system call that a signal interrupted.

use super::Action;

/// What happens to a system call that a signal interrupts (signal(7), "Interruption of system calls
/// and library functions").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartKind {
    /// The call fails with `EINTR`, even if no handler runs (a stop and continue suffices):
    /// sigtimedwait.
    Never,
    /// The call is restarted if no handler runs, or if the handler's action says so (SA_RESTART):
    /// read, wait4 (`ERESTARTSYS`).
    RestartSys,
    /// The call is restarted only if no handler runs: pause, sigsuspend, poll (`ERESTARTNOHAND`).
    RestartNoHand,
    /// The call goes on with what remains of it if no handler runs, in the front end's way:
    /// nanosleep (`ERESTART_RESTARTBLOCK`).
    RestartBlock,
    /// The call is always restarted; the program sees nothing of the signal (`ERESTARTNOINTR`).
    RestartNoIntr,
}

/// How a thread goes on after an interrupted call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumption {
    /// The call fails with `EINTR`.
    Interrupted,
    /// The call is made again with the same arguments.
    Restart,
    /// The call is continued with what remains of it.
    Continue,
}

impl RestartKind {
    /// What becomes of the call when the first delivered signal runs the handler of `action`
    /// (`None` if no handler runs).
    pub fn decide(self, action: Option<&Action>) -> Resumption {
        match (self, action) {
            (RestartKind::Never, _) => Resumption::Interrupted,
            (RestartKind::RestartNoIntr, _) => Resumption::Restart,
            (RestartKind::RestartSys | RestartKind::RestartNoHand, None) => Resumption::Restart,
            (RestartKind::RestartSys, Some(action)) if action.flags.restart => Resumption::Restart,
            (RestartKind::RestartBlock, None) => Resumption::Continue,
            (RestartKind::RestartSys | RestartKind::RestartNoHand | RestartKind::RestartBlock, Some(_)) => {
                Resumption::Interrupted
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::{ActionFlags, Disposition};

    #[test]
    fn each_restart_kind_decides_by_handler_and_sa_restart() {
        let plain = Action { disposition: Disposition::Handler(1), ..Action::default() };
        let restart = Action { flags: ActionFlags { restart: true, ..ActionFlags::default() }, ..plain };
        use Resumption::{Continue, Interrupted, Restart};
        let cases = [
            (RestartKind::Never, [Interrupted, Interrupted, Interrupted]),
            (RestartKind::RestartSys, [Restart, Interrupted, Restart]),
            (RestartKind::RestartNoHand, [Restart, Interrupted, Interrupted]),
            (RestartKind::RestartBlock, [Continue, Interrupted, Interrupted]),
            (RestartKind::RestartNoIntr, [Restart, Restart, Restart]),
        ];
        for (kind, expected) in cases {
            let got = [kind.decide(None), kind.decide(Some(&plain)), kind.decide(Some(&restart))];
            assert_eq!(got, expected, "{kind:?}");
        }
    }
}
