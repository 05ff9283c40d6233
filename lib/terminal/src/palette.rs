//! The palette: what the numbers of colours stand for.

use crate::cell::Colour;

/// Red, green and blue.
pub type Rgb = [u8; 3];

/// The sixteen colours that a program can change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Palette([Rgb; 16]);

impl Default for Palette {
    /// The colours of the VGA's text mode: each primary is on by two thirds or not, brown is dark
    /// yellow, and the bright form adds a third.
    fn default() -> Palette {
        let mut colours = [[0; 3]; 16];
        for (number, colour) in colours.iter_mut().enumerate() {
            let third = if number & 8 == 0 { 0 } else { 0x55 };
            for (bit, part) in colour.iter_mut().enumerate() {
                *part = third + if number & 1 << bit == 0 { 0 } else { 0xaa };
            }
        }
        colours[3] = [0xaa, 0x55, 0];
        Palette(colours)
    }
}

impl Palette {
    /// Changes a colour, 0 to 15.
    pub(crate) fn set(&mut self, number: u8, colour: Rgb) {
        if let Some(place) = self.0.get_mut(usize::from(number)) {
            *place = colour;
        }
    }

    /// Red, green and blue of a colour.
    pub fn rgb(&self, colour: Colour) -> Rgb {
        let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
        match colour {
            Colour::Default => self.0[7],
            Colour::Indexed(number @ 0..16) => self.0[usize::from(number)],
            Colour::Indexed(number @ 16..232) => {
                let cube = number - 16;
                [level(cube / 36), level(cube / 6 % 6), level(cube % 6)]
            }
            Colour::Indexed(number) => [8 + 10 * (number - 232); 3],
            Colour::Rgb(red, green, blue) => [red, green, blue],
        }
    }

    /// The number, 0 to 15, of the colour that is nearest to this one.
    pub fn nearest(&self, colour: Colour) -> u8 {
        if let Colour::Indexed(number @ 0..16) = colour {
            return number;
        }
        let wanted = self.rgb(colour);
        let distance = |other: &Rgb| -> u32 {
            wanted.iter().zip(other).map(|(one, other)| u32::from(one.abs_diff(*other)).pow(2)).sum()
        };
        let nearest = (0u8..).zip(&self.0).min_by_key(|(_, other)| distance(other));
        nearest.map_or(0, |(number, _)| number)
    }
}
