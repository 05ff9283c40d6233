//! Where the screen of an emulated machine is seen.

use crate::qemu;
use anyhow::{Result, bail};
use mac_build::command;
use std::process::Command;

/// Where the machine's screen is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Window {
    /// In a window of this desktop
    Window,
    /// With a viewer of VNC, at port 5900 of this machine
    Vnc,
    /// Nowhere: for pictures of it
    None,
}

/// The kinds of windows that QEMU may have, the better first.
const KINDS: [&str; 2] = ["gtk", "sdl"];

/// The value of QEMU's option for the window.
///
/// # Errors
/// There is no desktop, or QEMU has no windows. The error says what to do.
pub(crate) fn display(window: Option<Window>) -> Result<&'static str> {
    match window {
        None | Some(Window::None) => Ok("none"),
        Some(Window::Vnc) => Ok("vnc=127.0.0.1:0"),
        Some(Window::Window) => {
            let said = command::output(Command::new(qemu::binary()?).args(["-display", "help"]))?;
            let is_there = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
            kind(&said, is_there("DISPLAY") || is_there("WAYLAND_DISPLAY"))
        }
    }
}

/// The kind of window, from QEMU's list of kinds.
fn kind(said: &str, has_desktop: bool) -> Result<&'static str> {
    const OTHERWISE: &str = "with --screen=vnc a viewer shows the screen: vncviewer 127.0.0.1:5900";
    if !has_desktop {
        bail!("--screen: there is no desktop here (neither DISPLAY nor WAYLAND_DISPLAY is set); {OTHERWISE}");
    }
    let found = KINDS.into_iter().find(|kind| said.lines().any(|line| line.trim() == *kind));
    let Some(kind) = found else {
        bail!("--screen: QEMU has no windows here (Debian: apt-get install qemu-system-gui); {OTHERWISE}");
    };
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_of_the_best_kind_and_without_one_the_error_says_what_helps() {
        let list = |kinds: &str| format!("Available display backend types:\nnone\n{kinds}curses\n");
        assert_eq!(kind(&list("sdl\ngtk\n"), true).unwrap(), "gtk");
        assert_eq!(kind(&list("sdl\n"), true).unwrap(), "sdl");
        let error = |said: &str, has_desktop| kind(said, has_desktop).unwrap_err().to_string();
        assert!(error(&list(""), true).contains("qemu-system-gui"));
        assert!(error(&list("gtk\n"), false).contains("--screen=vnc"));
        assert_eq!(
            (display(None).unwrap(), display(Some(Window::Vnc)).unwrap()),
            ("none", "vnc=127.0.0.1:0")
        );
    }
}
