//! The screen's server as a program: root has started it with the screen and, for the text mode,
//! with the two ports by which the VGA's cursor is hidden. Its arguments are the names of the
//! servers that drive keyboards.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::vec::Vec;
use console::area;
use console::attached::{self, Ends};
use core::fmt::Write;
use direct::Reply;
use driver::client::{Attachment, Client};
use driver::{Interrupts, WORK, end};
use input::client::Input;
use input::event::Event;
use input::keymap::{Action, KeyMap, Modes as KeyModes, Typed};
use interfaces::console::{Server, serve};
use l4::direct::Direct;
use l4::x2::boot_info::Screen as Description;
use l4::x2::{MessageTag, ThreadId, Time};
use l4::{extension, port, utcb};
use rt::root::{self, Status, device, memory};
use rt::start_page;
use screen::characters::Characters;
use screen::framebuffer::Framebuffer;
use screen::memory::ScreenMemory;
use screen::saved::{self, Saved};
use screen::shown::{Display, Screen, Shown};
use terminal::{Cell, Modes, Terminal};

l4::program!(run, kip = start_page::KIP);

rt::growing_heap!(1 << 20);

/// How many virtual consoles there are: six for login, as Debian has it, and one for programs that
/// open a console of their own. Their numbers begin with 1.
const CONSOLES: u64 = 7;
/// The address at which the areas of clients are mapped, one after the other.
const AREAS: u64 = 0x4000_0000;
/// The address at which memory that is shared with the drivers of keyboards is mapped, and how far
/// that of one is from that of the next.
const KEYBOARDS: u64 = 0x5000_0000;
const NEXT_KEYBOARD: u64 = 4096;
/// The address at which the screen's memory is mapped.
const SCREEN: u64 = 0x100_0000_0000;
/// The address of the memory in which consoles are saved.
const SAVED: u64 = 0x6000_0000;
/// The most lines that a console keeps after they have left it, and the bytes that the lines of all
/// consoles may take together.
const MOST_HISTORY: usize = 200;
const HISTORY_BYTES: usize = 6 << 20;
/// How many bytes of a console's output are shown in one step, and how many steps are made before
/// the server looks at requests.
const PIECE: usize = 512;
const STEPS: usize = 64;
/// How often the drivers of keyboards are looked at, which may have ended.
const LOOK: Time = Time::period(500_000);
/// The VGA's registers that place the cursor, and the bit that hides it.
const CURSOR_START: u8 = 0x0a;
const CURSOR_OFF: u8 = 0x20;

/// A virtual console.
struct Console {
    terminal: Terminal,
    client: Option<Client<Ends>>,
    /// Whether there was output since the console was saved.
    is_changed: bool,
    /// The position in the client's output at which an earlier server had saved the console.
    saved: Option<u32>,
}

/// A keyboard, and its state.
struct Keyboard {
    name: &'static str,
    /// `None`: there is no such keyboard.
    input: Option<Input>,
    map: KeyMap,
}

/// Either kind of screen.
enum Kind {
    Pixels(Framebuffer<'static>),
    Characters(Characters<'static>),
}

struct Consoles {
    screen: Screen<Kind>,
    consoles: Vec<Console>,
    keyboards: Vec<Keyboard>,
    /// Where consoles are saved, if the configuration gives the server memory for that.
    saved: Option<Saved>,
    /// The index of the console that is visible.
    visible: usize,
    /// Whether another console was visible when the screen was drawn last.
    is_new: bool,
    /// Whether no client has attached yet.
    is_fresh: bool,
}

impl Display for Kind {
    fn size(&self) -> (usize, usize) {
        match self {
            Kind::Pixels(pixels) => pixels.size(),
            Kind::Characters(characters) => characters.size(),
        }
    }

    fn draw(&mut self, row: usize, column: usize, cell: &Shown) {
        match self {
            Kind::Pixels(pixels) => pixels.draw(row, column, cell),
            Kind::Characters(characters) => characters.draw(row, column, cell),
        }
    }
}

fn run() -> ! {
    driver::start("screen", |_| start())
}

/// Makes blank consoles on the machine's screen.
fn start() -> Result<Consoles, &'static str> {
    let screen = Screen::new(open(device::screen().ok_or("the loader has set up none")?));
    let (columns, rows) = screen.size();
    let line = columns * size_of::<Cell>();
    let history = (HISTORY_BYTES / CONSOLES as usize / line).min(MOST_HISTORY);
    let saved = memory::allocate_kept_dma(SAVED, saved::SIZE, 64).ok();
    // SAFETY: root has mapped the memory for this program, which never frees it; nothing else is
    // there.
    let saved = saved.map(|_| unsafe { Saved::at(SAVED) });
    let console = |index| {
        let mut terminal = Terminal::new(columns, rows, history);
        let before = saved.as_ref().and_then(|saved| saved.load(index));
        let saved = before.map(|(position, description)| {
            terminal.write(&description);
            position
        });
        Console { terminal, client: None, is_changed: false, saved }
    };
    let consoles = (0..CONSOLES as usize).map(console).collect();
    let words = start_page::read().map_or("", |(_, arguments)| arguments).split_whitespace();
    let names = words.filter(|word| !word.contains('='));
    let keyboards = names.enumerate().map(|(index, name)| Keyboard::open(name, index as u64)).collect();
    Ok(Consoles { screen, consoles, keyboards, saved, visible: 0, is_new: true, is_fresh: true })
}

/// Maps the screen's memory. Ends the server if that cannot be.
fn open(description: Description) -> Kind {
    const PAGE: u64 = 4096;
    let offset = description.physical % PAGE;
    let size = (offset + description.size()).next_multiple_of(PAGE);
    device::map_device(description.physical - offset, size, SCREEN).expect("the screen is this server's");
    // SAFETY: root has mapped the memory there just now, and it is used here only.
    let memory = unsafe { ScreenMemory::at(SCREEN + offset, description.size()) };
    if description.is_text() {
        hide_cursor();
        return Kind::Characters(Characters::new(memory, description));
    }
    Kind::Pixels(Framebuffer::new(memory, description).unwrap_or_else(|reason| panic!("{reason}")))
}

/// Hides the cursor of the VGA, if the configuration gives its ports: cursors are drawn as cells.
fn hide_cursor() {
    if let Some(ports) = device::ports(0) {
        // SAFETY: the registers do not affect memory.
        unsafe {
            port::write8(*ports.start(), CURSOR_START);
            port::write8(*ports.end(), CURSOR_OFF);
        }
    }
}

/// The bits of the locks that these lights show, as clients know them.
fn locks_of(lights: u32) -> u32 {
    use input::event::{CAPS_LOCK_LIGHT, NUM_LOCK_LIGHT, SCROLL_LOCK_LIGHT};
    let lock = |light: u32, bit: u32| if lights & light == 0 { 0 } else { bit };
    lock(SCROLL_LOCK_LIGHT, 1) | lock(NUM_LOCK_LIGHT, 2) | lock(CAPS_LOCK_LIGHT, 4)
}

impl Keyboard {
    /// Opens the keyboard that the server `name` drives, as the one of this index.
    fn open(name: &'static str, index: u64) -> Keyboard {
        let address = KEYBOARDS + index * NEXT_KEYBOARD;
        let input = match input::client::open(name, address, utcb::my_global_id(), WORK) {
            Ok(input) => Some(input),
            Err(Status::NotFound) => None,
            Err(status) => {
                // The console cannot fail.
                let _ = writeln!(root::Console, "screen: the keyboard {name} is not there: {status:?}");
                None
            }
        };
        Keyboard { name, input, map: KeyMap::new(&input::layout::US) }
    }

    /// The next event. A driver that has ended and was started again is opened again.
    fn read(&mut self) -> Option<Event> {
        let input = self.input.as_mut()?;
        let event = input.read();
        if event.is_none()
            && input.has_ended()
            && input.open_again(self.name, utcb::my_global_id(), WORK).is_ok()
        {
            self.map.release_all();
        }
        event
    }
}

impl driver::Driver for Consoles {
    fn interrupts(&self) -> Interrupts<'_> {
        Interrupts::None
    }

    /// A keyboard's driver that was started again is found after so long, since it has no client
    /// yet that it could notify.
    fn period(&self) -> Time {
        LOOK
    }

    fn serve(&mut self) {
        let mut steps = 0;
        while self.step() {
            steps += 1;
            if steps == STEPS {
                // A client that always has output must not keep requests waiting: the server comes
                // back to it after the next message. The thread exists, so that this cannot fail.
                let _ = extension::notify(utcb::my_global_id(), WORK);
                break;
            }
        }
        self.save();
        self.tell_state();
        let Consoles { screen, consoles, visible, is_new, .. } = self;
        screen.show(&mut consoles[*visible].terminal, core::mem::take(is_new));
        for console in consoles {
            console.client.take_if(|client| !attached::tell(client));
        }
    }

    fn answer(&mut self, from: ThreadId, tag: MessageTag, registers: &mut Direct) -> Option<Reply<'static>> {
        serve(self, from, tag, registers, &[], &mut [])
    }
}

impl Consoles {
    /// Takes keys, and a piece of output of each console. Returns whether there was any.
    fn step(&mut self) -> bool {
        let mut was_any = false;
        for index in 0..self.keyboards.len() {
            while let Some(event) = self.keyboards[index].read() {
                was_any = true;
                self.event(index, event);
            }
        }
        for console in &mut self.consoles {
            was_any |= console.step();
        }
        was_any
    }

    /// Saves the consoles that have changed. Only then their clients may forget the output.
    fn save(&mut self) {
        for (index, console) in self.consoles.iter_mut().enumerate() {
            let Some(client) = console.client.as_ref().filter(|_| console.is_changed) else { continue };
            console.is_changed = false;
            if let Some(saved) = &self.saved {
                saved.save(index, client.shared.position(), &console.terminal.describe());
            }
            end::step();
            client.shared.publish();
        }
    }

    /// Takes the clients' wishes, and tells them which console is visible and which locks are on.
    fn tell_state(&mut self) {
        // Each wish is taken, and the last one counts.
        let clients = self.consoles.iter().filter_map(|console| console.client.as_ref());
        let wanted = clients.fold(None, |last, client| client.shared.take_wanted().or(last));
        if let Some(number) = wanted {
            self.change_to((number as usize).wrapping_sub(1));
        }
        let locks = self.keyboards.iter().fold(0, |locks, keyboard| locks | locks_of(keyboard.map.lights()));
        let visible = u32::try_from(self.visible + 1).unwrap_or(0);
        for client in self.consoles.iter_mut().filter_map(|console| console.client.as_mut()) {
            client.shared.set_state(visible, locks);
        }
    }

    fn event(&mut self, keyboard: usize, event: Event) {
        let console = &mut self.consoles[self.visible];
        let modes = console.terminal.modes();
        let modes = KeyModes {
            application_cursor: modes.contains(Modes::APPLICATION_CURSOR),
            application_keypad: modes.contains(Modes::APPLICATION_KEYPAD),
            new_line: modes.contains(Modes::NEW_LINE),
        };
        let keyboard = &mut self.keyboards[keyboard];
        let typed = keyboard.map.event(event, modes);
        if let Some(input) = &keyboard.input {
            input.set_lights(keyboard.map.lights());
        }
        match typed {
            Some(Typed::Bytes(bytes)) => console.type_in(&bytes),
            Some(Typed::Action(action)) => self.act(action),
            None => {}
        }
    }

    fn act(&mut self, action: Action) {
        let count = self.consoles.len();
        let half = (self.screen.size().1 / 2) as isize;
        let console = &mut self.consoles[self.visible];
        match action {
            Action::Console(number) => self.change_to(usize::from(number).wrapping_sub(1)),
            Action::PreviousConsole => self.change_to((self.visible + count - 1) % count),
            Action::NextConsole => self.change_to((self.visible + 1) % count),
            Action::ScrollBack => console.terminal.scroll(half),
            Action::ScrollForward => console.terminal.scroll(-half),
            // No server takes it: a restart is a program's decision.
            Action::Restart => {}
        }
    }

    /// Makes a console visible, if there is one of this index.
    fn change_to(&mut self, index: usize) {
        if index < self.consoles.len() && index != self.visible {
            self.visible = index;
            self.is_new = true;
        }
    }
}

impl Console {
    /// Shows a piece of output. Returns whether there was any.
    fn step(&mut self) -> bool {
        let Some(client) = &mut self.client else { return false };
        let (mut piece, mut length) = ([0; PIECE], 0);
        client.shared.take_ahead(PIECE, |byte| {
            piece[length] = byte;
            length += 1;
        });
        if length > 0 {
            end::step();
        }
        self.terminal.write(&piece[..length]);
        self.is_changed |= length > 0;
        let answers = self.terminal.take_answers();
        self.type_in(&answers);
        length > 0
    }

    /// Gives the client what was typed. Without a client it is lost.
    fn type_in(&mut self, bytes: &[u8]) {
        if let Some(client) = self.client.as_mut().filter(|_| !bytes.is_empty()) {
            client.shared.receive(bytes);
        }
    }
}

impl Server for Consoles {
    fn console_attach(
        &mut self,
        _: ThreadId,
        number: u64,
        share: u64,
        thread: u64,
        bits: u64,
    ) -> Result<(u64, u64), direct::Status> {
        let index = number.wrapping_sub(1);
        let place = usize::try_from(index).ok().and_then(|index| self.consoles.get_mut(index));
        let console = place.ok_or(Status::NotFound)?;
        let address = AREAS + index * area::SIZE;
        // SAFETY: nothing else is at this address, and the client is always this field.
        unsafe { attached::attach(&mut console.client, Attachment { share, thread, bits }, address)? };
        if let Some((client, position)) = console.client.as_mut().zip(console.saved.take()) {
            client.shared.go_on_at(position);
        }
        // A server that is started again goes on with the console that was visible.
        let visible = console.client.as_ref().map_or(0, |client| client.shared.visible());
        if core::mem::take(&mut self.is_fresh) {
            self.change_to((visible as usize).wrapping_sub(1));
        }
        self.tell_state();
        let (columns, rows) = self.screen.size();
        Ok((columns as u64, rows as u64))
    }
}
