//! What happens to a system call that a signal interrupted.

use super::Action;

/// What a call asks for when it is interrupted (signal(7), "Interruption of system calls and
/// library functions").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// It fails with `EINTR`, even if no handler runs (a stop and continue suffices):
    /// sigtimedwait.
    Fail,
    /// It is restarted if no handler runs, or if the handler's action says so (SA_RESTART): read,
    /// wait4.
    IfAsked,
    /// It is restarted only if no handler runs: pause, sigsuspend, poll.
    WithoutHandler,
    /// It is continued with what remains of it if no handler runs, in its front end's way:
    /// nanosleep.
    Continue,
    /// The call is always restarted; the program sees nothing of the signal.
    Always,
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

impl Rule {
    /// The decision, when the first signal delivered runs the handler of `action` (`None`: no
    /// handler runs).
    pub fn decide(self, action: Option<&Action>) -> Resumption {
        match (self, action) {
            (Rule::Fail, _) => Resumption::Interrupted,
            (Rule::Always, _) => Resumption::Restart,
            (Rule::IfAsked | Rule::WithoutHandler, None) => Resumption::Restart,
            (Rule::IfAsked, Some(action)) if action.flags.restart => Resumption::Restart,
            (Rule::Continue, None) => Resumption::Continue,
            (Rule::IfAsked | Rule::WithoutHandler | Rule::Continue, Some(_)) => Resumption::Interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::{ActionFlags, Disposition};

    #[test]
    fn decisions() {
        let plain = Action { disposition: Disposition::Handler(1), ..Action::default() };
        let restart = Action { flags: ActionFlags { restart: true, ..ActionFlags::default() }, ..plain };
        use Resumption::{Continue, Interrupted, Restart};
        let cases = [
            (Rule::Fail, [Interrupted, Interrupted, Interrupted]),
            (Rule::IfAsked, [Restart, Interrupted, Restart]),
            (Rule::WithoutHandler, [Restart, Interrupted, Interrupted]),
            (Rule::Continue, [Continue, Interrupted, Interrupted]),
            (Rule::Always, [Restart, Restart, Restart]),
        ];
        for (rule, expected) in cases {
            let got = [rule.decide(None), rule.decide(Some(&plain)), rule.decide(Some(&restart))];
            assert_eq!(got, expected, "{rule:?}");
        }
    }
}
