//! What a process does about each signal.

use super::{DefaultAction, Signal, SignalSet};
use alloc::vec::Vec;

/// What happens when a signal is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disposition {
    /// The signal's default action is taken (SIG_DFL).
    #[default]
    Default,
    /// The signal is ignored (SIG_IGN).
    Ignore,
    /// The program's function at this address is called.
    Handler(u64),
}

/// The options of sigaction(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionFlags {
    /// Restart interrupted calls (SA_RESTART).
    pub restart: bool,
    /// Run on the alternate stack, if one is set (SA_ONSTACK).
    pub on_stack: bool,
    /// Do not block the signal in its own handler (SA_NODEFER).
    pub no_defer: bool,
    /// The action is set back to the default when the signal is delivered (SA_RESETHAND).
    pub reset: bool,
    /// The handler takes information and context (SA_SIGINFO).
    pub information: bool,
    /// For SIGCHLD: no signal when children stop or continue (SA_NOCLDSTOP).
    pub no_child_stop: bool,
    /// For SIGCHLD: children leave no zombies (SA_NOCLDWAIT).
    pub no_child_wait: bool,
}

/// What a program asked for with sigaction(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// What happens when the signal is delivered.
    pub disposition: Disposition,
    /// Signals that are blocked while the handler runs, in addition to the signal itself.
    pub mask: SignalSet,
    /// The options of the action (SA_RESTART and others).
    pub flags: ActionFlags,
    /// Where the handler returns to, if the program states it (SA_RESTORER).
    pub restorer: Option<u64>,
}

/// The actions of a process for every signal. Processes may share one (a clone that shares signal
/// actions).
///
/// The list is in the order of signals and ends with the last that a program has set: each fork
/// copies it.
#[derive(Clone, Debug, Default)]
pub struct Actions(Vec<Action>);

impl Actions {
    /// The action of the process for `signal`.
    pub fn get(&self, signal: Signal) -> Action {
        self.0.get(index(signal)).copied().unwrap_or_default()
    }

    /// Sets the action for `signal` and returns the old one. Signals that cannot be caught are not
    /// changed (the caller reports `EINVAL`).
    pub fn set(&mut self, signal: Signal, mut action: Action) -> Action {
        let old = self.get(signal);
        if !SignalSet::UNMASKABLE.contains(signal) {
            action.mask = action.mask.as_mask();
            let index = index(signal);
            if index >= self.0.len() && action != Action::default() {
                self.0.resize(index + 1, Action::default());
            }
            if let Some(place) = self.0.get_mut(index) {
                *place = action;
            }
        }
        old
    }

    /// Whether delivery of `signal` would do nothing.
    pub fn ignores(&self, signal: Signal) -> bool {
        match self.get(signal).disposition {
            Disposition::Ignore => true,
            // SIGCONT acts when it is generated; its delivery does nothing unless there is a
            // handler.
            Disposition::Default => {
                matches!(signal.default_action(), DefaultAction::Ignore | DefaultAction::Continue)
            }
            Disposition::Handler(_) => false,
        }
    }

    /// The signals for which the program has a handler.
    pub fn caught(&self) -> SignalSet {
        self.select(|action| matches!(action.disposition, Disposition::Handler(_)))
    }

    /// The signals that the program has set to be ignored.
    pub fn ignored(&self) -> SignalSet {
        self.select(|action| action.disposition == Disposition::Ignore)
    }

    /// Prepares the actions for exec: handlers become defaults (the program that had them is gone),
    /// ignored signals stay ignored.
    pub fn reset_for_exec(&mut self) {
        for action in &mut self.0 {
            let kept = match action.disposition {
                Disposition::Handler(_) => Disposition::Default,
                other => other,
            };
            *action = Action { disposition: kept, ..Action::default() };
        }
    }

    /// Sets every signal that has a handler to its default action; ignored signals stay ignored.
    pub fn clear_handlers(&mut self) {
        for action in &mut self.0 {
            if matches!(action.disposition, Disposition::Handler(_)) {
                *action = Action::default();
            }
        }
    }

    fn select(&self, condition: impl Fn(&Action) -> bool) -> SignalSet {
        let mut set = SignalSet::EMPTY;
        for (index, action) in self.0.iter().enumerate() {
            if condition(action) {
                set.insert(Signal(index as u8 + 1));
            }
        }
        set
    }
}

fn index(signal: Signal) -> usize {
    usize::from(signal.number()) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exec_keeps_only_ignored_signals() {
        let mut actions = Actions::default();
        let handler = Action { disposition: Disposition::Handler(0x1000), ..Action::default() };
        let ignore =
            Action { disposition: Disposition::Ignore, mask: !SignalSet::EMPTY, ..Action::default() };
        assert_eq!(actions.set(Signal::INT, handler), Action::default());
        actions.set(Signal::HUP, ignore);
        actions.set(Signal::KILL, ignore);
        assert_eq!(actions.get(Signal::KILL).disposition, Disposition::Default);
        assert!(!actions.get(Signal::HUP).mask.contains(Signal::STOP));
        assert!(
            actions.ignores(Signal::HUP) && actions.ignores(Signal::CHLD) && !actions.ignores(Signal::INT)
        );
        assert_eq!(actions.caught(), SignalSet::of(&[Signal::INT]));
        actions.reset_for_exec();
        assert_eq!(actions.caught(), SignalSet::EMPTY);
        assert_eq!(actions.ignored(), SignalSet::of(&[Signal::HUP]));
        assert!(actions.get(Signal::HUP).mask.is_empty());
    }
    #[test]
    fn each_signal_has_its_own_action_and_default_actions_take_no_memory() {
        let mut actions = Actions::default();
        let ignore = Action { disposition: Disposition::Ignore, ..Action::default() };
        let last = Signal(Signal::MAX);
        actions.set(last, Action::default());
        assert_eq!((actions.get(last), actions.0.capacity()), (Action::default(), 0));
        actions.set(last, ignore);
        assert_eq!([actions.get(Signal::HUP), actions.get(last)], [Action::default(), ignore]);
        assert_eq!(actions.ignored(), SignalSet::of(&[last]));
        assert_eq!(actions.set(last, Action::default()), ignore);
        assert_eq!(actions.get(last), Action::default());
    }
}
