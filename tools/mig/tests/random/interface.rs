//! Random interfaces, with the declarations of their types in C and in Rust.

use std::fmt::Write;

/// The SplitMix64 generator of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % bound as u64) as usize
    }
}

/// The kind of stubs that carry the arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Typed,
    Untyped,
    Direct,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Scalar,
    Array(usize),
    Struct(usize),
    Variable(usize),
    Text(usize),
    FixedText(usize),
    Memory,
    Unbounded,
    Right,
    Rights(usize),
    FixedRights(usize),
}

/// A type of a random interface, and its declaration in C.
pub(crate) struct Type {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The size of an element in C, in bytes.
    pub(crate) bytes: usize,
}

/// The most elements of an array out of line in these tests.
const MEMORY: usize = 1500;

impl Type {
    fn new(random: &mut Random, at: usize, way: Way) -> Type {
        let kind = match random.below(if way == Way::Direct { 10 } else { 13 }) {
            0 | 1 => Kind::Scalar,
            2 => Kind::Array(1 + random.below(40)),
            3 => Kind::Struct(1 + random.below(40)),
            4 | 5 => Kind::Variable(1 + random.below(70)),
            6 => Kind::Text(1 + random.below(60)),
            7 => Kind::FixedText(1 + random.below(60)),
            9 if way != Way::Untyped => Kind::Unbounded,
            8 | 9 => Kind::Memory,
            10 => Kind::Right,
            11 => Kind::Rights(1 + random.below(9)),
            _ => Kind::FixedRights(1 + random.below(9)),
        };
        let bytes = match kind {
            Kind::Text(_) | Kind::FixedText(_) => 1,
            Kind::Right | Kind::Rights(_) | Kind::FixedRights(_) => 4,
            _ => 1 << random.below(4),
        };
        Type { name: format!("t{at}_t"), kind, bytes }
    }

    pub(crate) fn element(&self) -> String {
        format!("uint{}_t", self.bytes * 8)
    }

    /// The largest number of elements of a value.
    pub(crate) fn most(&self) -> usize {
        match self.kind {
            Kind::Scalar | Kind::Right => 1,
            Kind::Array(n)
            | Kind::Struct(n)
            | Kind::Variable(n)
            | Kind::Text(n)
            | Kind::FixedText(n)
            | Kind::Rights(n)
            | Kind::FixedRights(n) => n,
            Kind::Memory | Kind::Unbounded => MEMORY,
        }
    }

    fn definition(&self) -> String {
        let element = ["INTEGER_8", "INTEGER_16", "INTEGER_32", "INTEGER_64"][self.bytes.ilog2() as usize];
        let element = format!("MACH_MSG_TYPE_{element}");
        let of = match self.kind {
            Kind::Scalar => element,
            Kind::Array(n) => format!("array[{n}] of {element}"),
            Kind::Struct(n) => format!("struct[{n}] of {element}"),
            Kind::Variable(n) => format!("array[*:{n}] of {element}"),
            Kind::Text(n) => format!("c_string[*:{n}]"),
            Kind::FixedText(n) => format!("c_string[{n}]"),
            Kind::Memory => format!("^array[] of {element}"),
            Kind::Unbounded => format!("array[] of {element}"),
            Kind::Right => "MACH_MSG_TYPE_COPY_SEND ctype: mach_port_t".to_owned(),
            Kind::Rights(n) => format!("array[*:{n}] of mach_port_t"),
            Kind::FixedRights(n) => format!("array[{n}] of mach_port_t"),
        };
        format!("type {} = {of};\n", self.name)
    }

    fn declaration(&self) -> String {
        let (name, element) = (&self.name, self.element());
        match self.kind {
            Kind::Scalar | Kind::Right => format!("typedef {element} {name};\n"),
            Kind::Array(n) | Kind::Variable(n) | Kind::Rights(n) | Kind::FixedRights(n) => {
                format!("typedef {element} {name}[{n}];\n")
            }
            // All members have one type, so that C adds no padding, as in a message.
            Kind::Struct(n) => format!("typedef struct {{ {element} a[{n}]; }} {name};\n"),
            Kind::Text(n) | Kind::FixedText(n) => {
                format!("typedef char {name}[{n}];\ntypedef const char *const_{name};\n")
            }
            Kind::Memory => format!("typedef {element} *{name};\n"),
            Kind::Unbounded => {
                format!("typedef {element} *{name};\ntypedef const {element} *const_{name};\n")
            }
        }
    }

    /// Whether a C function has a parameter for the number of elements.
    pub(crate) fn is_counted(&self) -> bool {
        matches!(self.kind, Kind::Variable(_) | Kind::Memory | Kind::Unbounded | Kind::Rights(_))
    }

    /// Whether C passes a value of the type as an address.
    pub(crate) fn is_array(&self) -> bool {
        !matches!(self.kind, Kind::Scalar | Kind::Struct(_) | Kind::Memory | Kind::Unbounded | Kind::Right)
    }

    /// Whether an `inout` argument can have the type.
    fn goes_both_ways(&self, way: Way) -> bool {
        let varies =
            matches!(self.kind, Kind::Variable(_) | Kind::Text(_) | Kind::Unbounded | Kind::Rights(_));
        way == Way::Untyped || way == Way::Typed && !varies
    }
}

/// The direction of one argument of a pair.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
    Both,
}

impl Direction {
    /// The prefix of the names of arguments with this direction.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Direction::In => "in",
            Direction::Out => "out",
            Direction::Both => "both",
        }
    }

    fn keyword(self) -> &'static str {
        if self == Direction::Both { "inout" } else { self.name() }
    }
}

/// A routine: the types of its pairs, and the arguments of all pairs in random order.
pub(crate) struct Routine {
    pub(crate) name: String,
    pub(crate) types: Vec<usize>,
    pub(crate) order: Vec<(usize, Direction)>,
}

impl Routine {
    /// Whether a pair is a single `inout` argument.
    pub(crate) fn goes_both_ways(&self, pair: usize) -> bool {
        self.order.contains(&(pair, Direction::Both))
    }
}

pub(crate) struct Interface {
    pub(crate) way: Way,
    pub(crate) types: Vec<Type>,
    pub(crate) routines: Vec<Routine>,
}

impl Interface {
    pub(crate) fn new(seed: u64, way: Way) -> Interface {
        let mut random = Random(seed);
        let types: Vec<Type> = (0..12).map(|at| Type::new(&mut random, at, way)).collect();
        let routine = |at: usize, random: &mut Random| {
            // A message of direct IPC has at most eight strings, so that routines have few pairs.
            let pairs: Vec<usize> = (0..random.below(4)).map(|_| random.below(types.len())).collect();
            let mut order: Vec<(usize, Direction)> = Vec::new();
            for (pair, &of) in pairs.iter().enumerate() {
                if types[of].goes_both_ways(way) && random.below(4) == 0 {
                    order.push((pair, Direction::Both));
                } else {
                    order.extend([(pair, Direction::In), (pair, Direction::Out)]);
                }
            }
            for at in (1..order.len()).rev() {
                order.swap(at, random.below(at + 1));
            }
            Routine { name: format!("r{at}"), types: pairs, order }
        };
        let routines = (0..12).map(|at| routine(at, &mut random)).collect();
        Interface { way, types, routines }
    }

    pub(crate) fn definition(&self) -> String {
        let mut text = "subsystem random 1000;\nserverprefix server_;\nimport \"random_types.h\";\n\
                        type mach_port_t = MACH_MSG_TYPE_COPY_SEND;\n"
            .to_owned();
        self.types.iter().for_each(|of| text += &of.definition());
        for routine in &self.routines {
            write!(text, "routine {}(port : mach_port_t", routine.name).unwrap();
            for &(pair, direction) in &routine.order {
                let of = &self.types[routine.types[pair]].name;
                let (keyword, name) = (direction.keyword(), direction.name());
                write!(text, "; {keyword} {name}{pair} : {of}").unwrap();
            }
            text += ");\n";
        }
        text
    }

    /// C declarations of the types; elements have their sizes in 64-bit messages.
    pub(crate) fn declarations(&self) -> String {
        let declared: String = self.types.iter().map(Type::declaration).collect();
        format!("#ifndef RANDOM_TYPES\n#define RANDOM_TYPES\n#include <stdint.h>\n{declared}#endif\n")
    }

    /// The type of a pair's arguments.
    pub(crate) fn type_of(&self, routine: &Routine, pair: usize) -> &Type {
        &self.types[routine.types[pair]]
    }
}
