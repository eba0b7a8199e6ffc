//! A server that runs the scripts under Lua 5.4, as Dragonfly does: whole numbers are of 64 bits there.
//!
//! Knows strings, ends and `struct`, nothing more. Invariant: a number that is no double stays no double,
//! so a script that relies on the arithmetic of 5.1 fails here. Nothing expires: states carry their own ends.

#![allow(clippy::disallowed_methods, reason = "a server in the test has threads of its own")]

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib, String as Text, Table, Value, Variadic};

type Keys = Arc<Mutex<BTreeMap<Vec<u8>, (Vec<u8>, i64)>>>;

pub(crate) struct Lua54 {
    port: u16,
}

impl Lua54 {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let keys = Keys::default();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let keys = Arc::clone(&keys);
                thread::spawn(move || serve(connection, &keys));
            }
        });
        Self { port }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }
}

fn serve(connection: TcpStream, keys: &Keys) {
    let (lua, mut reader) = (interpreter(keys), BufReader::new(connection.try_clone().unwrap()));
    let mut known = HashMap::new();
    let mut writer = connection;
    while let Some(words) = command(&mut reader) {
        let reply = match words[0].to_ascii_uppercase().as_slice() {
            b"EVAL" => run(&lua, &words, &mut known),
            b"EVALSHA" => b"-NOSCRIPT No matching script\r\n".to_vec(),
            b"FLUSHALL" => {
                keys.lock().unwrap().clear();
                b"+OK\r\n".to_vec()
            }
            b"CLIENT" => b"+OK\r\n".to_vec(),
            _ => b"-ERR unknown command\r\n".to_vec(),
        };
        if writer.write_all(&reply).is_err() {
            return;
        }
    }
}

/// The words of the next command.
fn command(reader: &mut impl BufRead) -> Option<Vec<Vec<u8>>> {
    let number = |reader: &mut dyn BufRead| {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        line.trim().get(1..)?.parse::<usize>().ok()
    };
    let count = number(reader)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut word = vec![0; number(reader)? + 2];
        reader.read_exact(&mut word).ok()?;
        word.truncate(word.len() - 2);
        words.push(word);
    }
    Some(words)
}

fn run(lua: &Lua, words: &[Vec<u8>], known: &mut HashMap<Vec<u8>, Function>) -> Vec<u8> {
    let count: usize = std::str::from_utf8(&words[2]).unwrap().parse().unwrap();
    let list = |words: &[Vec<u8>]| lua.create_sequence_from(words.iter().map(|word| lua.create_string(word).unwrap()));
    let (keys, arguments) = words[3..].split_at(count);
    lua.globals().set("KEYS", list(keys).unwrap()).unwrap();
    lua.globals().set("ARGV", list(arguments).unwrap()).unwrap();
    let compiled = || lua.load(words[1].as_slice()).into_function().unwrap();
    match known.entry(words[1].clone()).or_insert_with(compiled).call::<Value>(()) {
        Ok(value) => reply(&value),
        Err(error) => format!("-ERR {}\r\n", error.to_string().replace(['\r', '\n'], " ")).into_bytes(),
    }
}

fn reply(value: &Value) -> Vec<u8> {
    match value {
        Value::Integer(number) => format!(":{number}\r\n").into_bytes(),
        // As Redis does: cut off.
        #[allow(clippy::cast_possible_truncation, reason = "replies are small numbers")]
        Value::Number(number) => format!(":{}\r\n", *number as i64).into_bytes(),
        Value::String(text) => {
            [format!("${}\r\n", text.as_bytes().len()).as_bytes(), &text.as_bytes(), b"\r\n"].concat()
        }
        Value::Table(table) => {
            let items: Vec<Vec<u8>> = table.sequence_values::<Value>().map(|item| reply(&item.unwrap())).collect();
            [format!("*{}\r\n", items.len()).into_bytes(), items.concat()].concat()
        }
        _ => b"$-1\r\n".to_vec(),
    }
}

fn interpreter(keys: &Keys) -> Lua {
    let lua = Lua::new_with(StdLib::STRING | StdLib::TABLE | StdLib::MATH, LuaOptions::default()).unwrap();
    let redis = lua.create_table().unwrap();
    for name in ["call", "pcall"] {
        let keys = Arc::clone(keys);
        let call = lua.create_function(move |lua, words: Variadic<Text>| call(lua, &words, &keys));
        redis.set(name, call.unwrap()).unwrap();
    }
    let packing: Table = lua.create_table().unwrap();
    packing.set("pack", lua.create_function(pack).unwrap()).unwrap();
    packing.set("unpack", lua.create_function(unpack).unwrap()).unwrap();
    lua.globals().set("redis", redis).unwrap();
    lua.globals().set("struct", packing).unwrap();
    lua
}

fn call(lua: &Lua, words: &[Text], keys: &Keys) -> mlua::Result<Value> {
    let (mut keys, key) = (keys.lock().unwrap(), words.get(1).map(|key| key.as_bytes().to_vec()));
    let ok = || lua.create_string("OK").map(Value::String);
    match (&*words[0].as_bytes(), key) {
        (b"GET", Some(key)) => match keys.get(&key) {
            Some((value, _)) => lua.create_string(value).map(Value::String),
            None => Ok(Value::Boolean(false)),
        },
        (b"GETRANGE", Some(key)) => {
            let number = |word: &Text| word.to_str()?.parse::<usize>().map_err(mlua::Error::external);
            let (first, last) = (number(&words[2])?, number(&words[3])?);
            let value = keys.get(&key).map_or(&[][..], |(value, _)| value);
            lua.create_string(value.get(first..value.len().min(last + 1)).unwrap_or_default()).map(Value::String)
        }
        (b"SET", Some(key)) => {
            assert_eq!(&*words[3].as_bytes(), b"PX", "a key without an end");
            let ttl = words[4].to_str()?.parse().map_err(mlua::Error::external)?;
            keys.insert(key, (words[2].as_bytes().to_vec(), ttl));
            ok()
        }
        // Resets carry no time, and need none.
        (b"TIME", None) => {
            let time = [lua.create_string("1700000000")?, lua.create_string("0")?];
            lua.create_sequence_from(time).map(Value::Table)
        }
        (b"DEL", Some(key)) => Ok(Value::Integer(i64::from(keys.remove(&key).is_some()))),
        (b"PTTL", Some(key)) => Ok(Value::Integer(keys.get(&key).map_or(-2, |(_, ttl)| *ttl))),
        (b"KEYS", _) => {
            let names = keys.keys().map(|key| lua.create_string(key).unwrap());
            lua.create_sequence_from(names).map(Value::Table)
        }
        _ => Err(mlua::Error::runtime("unknown command")),
    }
}

/// The fields of a big-endian format: `d`, `I4`, `c8`.
fn fields(format: &str) -> Vec<char> {
    format.strip_prefix('>').expect("big-endian").chars().filter(|c| c.is_alphabetic()).collect()
}

fn pack(lua: &Lua, (format, values): (String, Variadic<Value>)) -> mlua::Result<Text> {
    let mut bytes = Vec::new();
    for (field, value) in fields(&format).into_iter().zip(values) {
        match (field, value) {
            ('d', Value::Number(number)) => bytes.extend(number.to_be_bytes()),
            #[allow(clippy::cast_precision_loss, reason = "the scripts keep below 2^53")]
            ('d', Value::Integer(number)) => bytes.extend((number as f64).to_be_bytes()),
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^32")]
            ('I', Value::Number(number)) => bytes.extend((number as u32).to_be_bytes()),
            ('I', Value::Integer(number)) => bytes.extend(u32::try_from(number).unwrap().to_be_bytes()),
            ('c', Value::String(text)) => bytes.extend_from_slice(&text.as_bytes()[..8]),
            (field, value) => return Err(mlua::Error::runtime(format!("{field} is not made of {value:?}"))),
        }
    }
    lua.create_string(bytes)
}

fn unpack(lua: &Lua, (format, text, at): (String, Text, Option<usize>)) -> mlua::Result<MultiValue> {
    let bytes = text.as_bytes();
    let mut rest = bytes.get(at.unwrap_or(1) - 1..).unwrap_or_default();
    let mut values = Vec::new();
    for field in fields(&format) {
        let length = if field == 'I' { 4 } else { 8 };
        let Some((taken, left)) = rest.split_at_checked(length) else {
            return Err(mlua::Error::runtime("data string too short"));
        };
        rest = left;
        values.push(match field {
            'd' => Value::Number(f64::from_be_bytes(taken.try_into().unwrap())),
            // Doubles too under 5.1; whole numbers where 5.4 has them.
            'I' => Value::Integer(u32::from_be_bytes(taken.try_into().unwrap()).into()),
            'c' => Value::String(lua.create_string(taken)?),
            field => return Err(mlua::Error::runtime(format!("unknown field {field}"))),
        });
    }
    Ok(values.into_iter().collect())
}
