"""The functions behind the operations on alarms."""

from submax.live.monitoring.alarms.alarm_records import Alarm
from submax.web.server.access.key import time_text
from submax.web.server.interface import answers
from submax.web.server.interface.handlers import find_bandit, in_thread
from submax.web.server.interface.operation import OperationCall


async def list_alarms(call: OperationCall) -> answers.Alarms:
    """List the alarms of a bandit."""
    bandit = await find_bandit(call)
    alarms = await in_thread(bandit.alarms)
    return answers.Alarms([alarm_details(one) for one in alarms])


async def acknowledge_alarms(call: OperationCall) -> answers.Alarms:
    """Say that all alarms of a bandit were seen."""
    bandit = await find_bandit(call)
    await in_thread(lambda: bandit.acknowledge_alarms(by=""))
    return await list_alarms(call)


def alarm_details(alarm: Alarm) -> answers.AlarmDetails:
    """The message that describes an alarm."""
    return answers.AlarmDetails(
        alarm.kind, time_text(alarm.at), alarm.active, alarm.sentence, alarm.subject, alarm.values
    )
