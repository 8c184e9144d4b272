//! Reports a fault of a rank: to the launcher, over a connection of its own, since mpirun may end the job before it has forwarded
//! what a rank printed last; on stderr if there is no launcher, or if it cannot be reached.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::time::Duration;

/// `host:port:token`; the protocol is in src/dist/launch/lifelines.ts.
const LAUNCHER: &str = "TURBOGR_LIFELINE";
/// Time until the launcher has confirmed a report: a host name that cannot be resolved would take longer to fail.
const PATIENCE: Duration = Duration::from_secs(1);

/// `fault` is JSON, see `RankFault` in src/dist/launch/faults.ts.
pub fn report(rank: usize, fault: String) {
    let (tell, told) = mpsc::channel();
    let line = fault.clone();
    let telling = std::thread::Builder::new().spawn(move || tell.send(tell_launcher(rank, &line)));
    let heard = telling.is_ok() && told.recv_timeout(PATIENCE).is_ok_and(|sent| sent.is_some());
    if !heard {
        super::say(&format!("::turbogr-fault {fault}"));
    }
}

fn tell_launcher(rank: usize, fault: &str) -> Option<()> {
    let launcher = std::env::var(LAUNCHER).ok()?;
    let (address, token) = launcher.rsplit_once(':')?;
    let addresses = address.to_socket_addrs().ok()?;
    let mut connection = addresses
        .filter_map(|address| TcpStream::connect_timeout(&address, PATIENCE).ok())
        .next()?;
    connection.set_read_timeout(Some(PATIENCE)).ok()?;
    connection
        .write_all(format!("{token} {rank}\nfault {fault}\n").as_bytes())
        .ok()?;
    let heard = BufReader::new(connection).read_line(&mut String::new()).ok()?;
    (heard > 0).then_some(())
}
