import ProcessKit
import QueueService

@main
struct Main {
    static func main() async {
        await ServiceProcess.run(QueueMachine.owner) { QueueShell($0) }
    }
}
