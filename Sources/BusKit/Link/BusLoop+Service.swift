import Logging
import PodcastModel
import WireMessages
import ZeroMQ

// Handles the service side of the loop.

extension BusLoop {
    mutating func received(_ message: ServiceMessage, _ now: MonotonicTime, _ sockets: SocketSet) {
        switch message {
        case .link(let event): link(event, now, sockets)
        case .status(let name, let ready, let epoch):
            guard epoch == link?.epoch else { break }
            if ready != nil { retry(.ready(name), now, sockets) }
            onEvent(.status(name, ready: ready))
        case .request(let command): if link?.epoch != nil { onEvent(.command(command)) }
        }
    }

    mutating func link(_ event: PublishLink.Event, _ now: MonotonicTime, _ sockets: SocketSet) {
        guard let name = configuration.service?.name, let effects = link?.handle(event, now: now) else {
            if case .publish(let token, _, _) = event {
                finish(token, .failure(Failure(.unavailable, "This connection has no service.")))
            }
            return
        }
        for effect in effects {
            switch effect {
            case .open:
                do throws(ZeroMQError) { try openService(sockets) } catch { log("the bus can’t be reached", error) }
            case .clear:
                outbox = []
                outboxIndex = 0
            case .send(let message): outbox.append(message.message(name: name))
            case .begin(let epoch): onEvent(.epochBegan(epoch: epoch))
            case .published(let token, let position): finish(token, .success(position))
            case .dropped(let token, let failure): finish(token, .failure(failure))
            case .rejected(let publication, let code): onEvent(.rejected(publication, code: code))
            case .fenced(let failure): onEvent(.fenced(failure))
            }
        }
        flushOutbox(sockets)
    }

    private mutating func finish(_ token: PublishLink.Token, _ result: Result<StreamPosition, Failure>) {
        publishes.removeValue(forKey: token)?(result)
    }

    /// Sends the waiting messages in order. A dealer without a connection accepts none; then `writable` is requested.
    mutating func flushOutbox(_ sockets: SocketSet) {
        guard let service else { return }
        while outboxIndex < outbox.count {
            guard send(outbox[outboxIndex], on: service, sockets) else { break }
            outboxIndex += 1
        }
        let isEmpty = outboxIndex == outbox.count
        if isEmpty || outboxIndex >= 256 {
            outbox.removeFirst(outboxIndex)
            outboxIndex = 0
        }
        do throws(ZeroMQError) { try sockets.notifyWritable(!isEmpty, on: service) } catch {
            log("the bus’s socket can’t be watched", error)
        }
    }

    mutating func settleLeaving(_ now: MonotonicTime, _ sockets: SocketSet) {
        guard let leaving, link?.isSettled ?? true || now >= leaving.deadline else { return }
        self.leaving = nil
        if link?.epoch != nil {
            // The socket is closed next: messages that it has accepted must still be sent.
            if let service { try? sockets.set(.linger(200), on: service) }
            link(.goodbye, now, sockets)
        }
        leaving.completion()
    }
}
