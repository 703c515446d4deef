//! As much of a client of the Language Server Protocol as the tests need.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The longest that the server may take for anything, the first build of the macros among it.
const PATIENCE: Duration = Duration::from_secs(1200);

/// A server that has one file open.
pub struct Client {
    server: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    answers: HashMap<u64, Value>,
    last: u64,
    uri: String,
    text: String,
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Client {
    /// Starts the server and waits until it knows the crate in `folder`; `file` is what it has open.
    pub fn open(mut server: Command, folder: &Path, file: &Path) -> Client {
        let server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = server.spawn().expect("the server starts");
        let input = server.stdin.take().expect("piped");
        let mut output = BufReader::new(server.stdout.take().expect("piped"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            while let Some(message) = read(&mut output)
                && sender.send(message).is_ok()
            {}
        });
        let uri = format!("file://{}", file.display());
        let text = std::fs::read_to_string(file).expect("the file is there");
        let mut client = Client { server, input, messages, answers: HashMap::new(), last: 0, uri, text };
        let root = format!("file://{}", folder.display());
        client.request(
            "initialize",
            json!({
                "processId": std::process::id(),
                "rootUri": root,
                "workspaceFolders": [{ "uri": root, "name": "opened" }],
                "capabilities": {
                    "experimental": { "serverStatusNotification": true },
                    "textDocument": {
                        "hover": { "contentFormat": ["markdown"] },
                        "diagnostic": {},
                        "publishDiagnostics": { "tagSupport": { "valueSet": [1, 2] } },
                    },
                },
                "initializationOptions": {
                    "checkOnSave": false,
                    "cachePriming": { "enable": false },
                    "cargo": { "allTargets": false },
                },
            }),
        );
        client.notify("initialized", json!({}));
        let document = json!({ "uri": client.uri, "languageId": "rust", "version": 1, "text": client.text });
        client.notify("textDocument/didOpen", json!({ "textDocument": document }));
        client.wait_until_quiet();
        client
    }

    /// The file is another one from now on.
    pub fn change(&mut self, text: String) {
        self.text = text;
        self.last += 1;
        let document = json!({ "uri": self.uri, "version": self.last + 1 });
        self.notify(
            "textDocument/didChange",
            json!({ "textDocument": document, "contentChanges": [{ "text": self.text }] }),
        );
    }

    /// What a request with a place is answered: at the `|` of `place`, whose rest is a part of the file.
    pub fn at(&mut self, method: &str, place: &str, more: Value) -> Value {
        let (before, behind) = place.split_once('|').expect("a place has a `|`");
        let found = self.text.find(&format!("{before}{behind}"));
        let offset = found.unwrap_or_else(|| panic!("`{place}` is not a place in the file")) + before.len();
        let line_start = self.text[..offset].rfind('\n').map_or(0, |end| end + 1);
        let line = self.text[..offset].matches('\n').count();
        let mut parameters = json!({
            "textDocument": { "uri": self.uri },
            "position": { "line": line, "character": offset - line_start },
        });
        if let (Some(parameters), Value::Object(more)) = (parameters.as_object_mut(), more) {
            parameters.extend(more);
        }
        self.request(method, parameters)
    }

    /// What the server says about the file: where, what, and whether it is shown as unnecessary.
    pub fn diagnostics(&mut self) -> Vec<(String, String, bool)> {
        let answer = self.request("textDocument/diagnostic", json!({ "textDocument": { "uri": self.uri } }));
        let items = answer["items"].as_array().expect("diagnostics are a list");
        let said = items.iter().map(|item| {
            let is_grey = item["tags"].as_array().is_some_and(|tags| tags.contains(&json!(1)));
            let message = item["message"].as_str().unwrap_or_default().to_string();
            (self.source(&item["range"]), message, is_grey)
        });
        said.collect()
    }

    /// The text of a range of the file: of its first line, if it has several.
    pub fn source(&self, range: &Value) -> String {
        let number = |value: &Value| value.as_u64().unwrap_or_default() as usize;
        let line = self.text.lines().nth(number(&range["start"]["line"])).unwrap_or_default();
        let is_one_line = range["start"]["line"] == range["end"]["line"];
        let end = if is_one_line { number(&range["end"]["character"]) } else { line.len() };
        line.get(number(&range["start"]["character"])..end).unwrap_or_default().to_string()
    }

    fn notify(&mut self, method: &str, parameters: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": parameters }));
    }

    fn request(&mut self, method: &str, parameters: Value) -> Value {
        let started = Instant::now();
        loop {
            self.last += 1;
            let id = self.last;
            self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }));
            while !self.answers.contains_key(&id) {
                self.receive();
            }
            let answer = self.answers.remove(&id).expect("it is there");
            match answer.get("error") {
                None => return answer["result"].clone(),
                // What it was computing is out of date: ask again.
                Some(error) if ["-32801", "-32802", "-32800"].contains(&error["code"].to_string().as_str()) => {}
                Some(error) => panic!("{method}: {error}"),
            }
            assert!(started.elapsed() < PATIENCE, "{method} has no answer");
        }
    }

    fn wait_until_quiet(&mut self) {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < PATIENCE, "the server is never ready");
            let message = self.receive();
            if message["method"] == "experimental/serverStatus" && message["params"]["quiescent"] == json!(true) {
                assert_eq!(message["params"]["health"], "ok", "{message}");
                return;
            }
        }
    }

    /// The next message; a question of the server's is answered with nothing.
    fn receive(&mut self) -> Value {
        let message = self.messages.recv_timeout(PATIENCE).expect("the server says something");
        match (message.get("method"), message.get("id")) {
            (Some(_), Some(id)) => self.send(json!({ "jsonrpc": "2.0", "id": id, "result": null })),
            (None, Some(id)) => {
                self.answers.insert(id.as_u64().unwrap_or_default(), message.clone());
            }
            _ => {}
        }
        message
    }

    fn send(&mut self, message: Value) {
        let body = message.to_string();
        let written = write!(self.input, "Content-Length: {}\r\n\r\n{body}", body.len());
        written.and_then(|()| self.input.flush()).expect("the server listens");
    }
}

fn read(output: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        output.read_line(&mut line).ok().filter(|&bytes| bytes > 0)?;
        match line.trim().split_once(": ") {
            Some(("Content-Length", number)) => length = number.parse().ok(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length?];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
